// Every JSON body that we speak, by family.

#pragma once

#include "remoting/admin_bodies.h"        // group configuration, statistics, offset tables
#include "remoting/client_bodies.h"       // heartbeats, queue locks, group membership
#include "remoting/replication_bodies.h"  // a broker peer about its replication group
#include "remoting/route_bodies.h"        // brokers, topics, registration
