// Mutants: planted mistakes that prove that the tests would notice them.
//
//   if (TRIAD_MUTANT(7)) return;  // the mistake
//
// In a normal build TRIAD_MUTANT(n) is the constant false and costs nothing. Built with
// -DTRIAD_MUTANTS, exactly the mutant whose number a test has set is alive. Set it before threads
// start. Numbers are unique in the whole tree; each is listed where its test lives.

#pragma once

namespace triad {

#ifdef TRIAD_MUTANTS
inline int active_mutant = 0;  // 0 = none
#define TRIAD_MUTANT(n) (::triad::active_mutant == (n))
#else
#define TRIAD_MUTANT(n) false
#endif

}  // namespace triad
