'use strict';
// The unmodified Node client: main.js NAMESRV CASE... prints "case NAME: PASS|FAIL counts" for each; "all" stands for
// every case. Exit code 0 only when all passed.

const { execFileSync } = require('child_process');
const { Consumer, Producer, Message } = require('ali-ons');

const [ nameSrv, ...wanted ] = process.argv.slice(2);
const run = Date.now().toString(36);
const quiet = { info() {}, warn() {}, debug() {}, error: console.error, log() {} };
const common = { nameSrv, httpclient: {}, logger: quiet };  // the http client finds name servers by URL only
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

async function waitFor(condition, seconds = 60) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(50)) {
    if (condition()) return true;
  }
  return false;
}

// This client does not ask for the template of new topics: they are there before it comes, as in Aliyun's service.
function createTopic(name) {
  const topic = `${name}${run}`;
  execFileSync(process.env.TRIAD_ADMIN, [ 'updateTopic', '-n', process.env.TRIAD_ADMIN_NAMESRV || nameSrv, '-c', 'RaftCluster', '-t', topic, '-r', '4', '-w', '4' ]);
  return topic;
}

async function producer(name) {
  const p = new Producer({ ...common, producerGroup: `pg_${name}${run}` });
  await p.ready();
  return p;
}

// `listener` gets body and message; what it throws or returns is the answer.
async function consumer(name, topic, listener, options = {}, tags = '*') {
  const c = new Consumer({
    ...common,
    consumerGroup: `g_${name}${run}`,
    consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET',
    rebalanceInterval: 2000,
    ...options,
  });
  c.on('error', e => console.error(`${name}: ${e.message}`));
  c.subscribe(topic, tags, async m => listener(m.body.toString(), m));
  await c.ready();
  return c;
}

function result(ok, counts) {
  return { ok, counts };
}

async function send(p, topic, body, change) {
  const m = new Message(topic, 'T', body);
  if (change) change(m);
  return (await p.send(m)).sendStatus === 'SEND_OK' ? 1 : 0;
}

const cases = {
  async send_sync() {
    const topic = createTopic('NSync');
    const p = await producer('sync');
    let acked = 0;
    for (let i = 0; i < 100; i++) acked += await send(p, topic, `m${i}`);
    const seen = new Set();
    const c = await consumer('sync', topic, body => { seen.add(body); });
    const all = await waitFor(() => seen.size === 100);
    await c.close();
    await p.close();
    return result(all && acked === 100, `acked=${acked} read=${seen.size}`);
  },

  async concurrent() {
    const topic = createTopic('NConcurrent');
    const p = await producer('concurrent');
    let acked = await send(p, topic, 'm0');
    const seen = new Map();
    const c = await consumer('concurrent', topic, body => { seen.set(body, (seen.get(body) || 0) + 1); },
      { parallelConsumeLimit: 8 });
    for (let i = 1; i < 300; i++) acked += await send(p, topic, `m${i}`);
    const all = await waitFor(() => seen.size === 300);
    await c.close();
    await p.close();
    return result(all && acked === 300, `acked=${acked} distinct=${seen.size}`);
  },

  // One queue by sharding key, one message at a time: the order of sending.
  async orderly() {
    const topic = createTopic('NOrderly');
    const p = await producer('orderly');
    const next = new Map();
    let received = 0;
    let outOfOrder = 0;
    let acked = 0;
    for (let i = 0; i < 200; i++) {
      acked += await send(p, topic, `k${i % 10}:${Math.floor(i / 10)}`, m => { m.shardingKey = `k${i % 10}`; });
    }
    const c = await consumer('orderly', topic, body => {
      const [ key, n ] = body.split(':');
      if ((next.get(key) || 0) !== Number(n)) outOfOrder++;
      next.set(key, Number(n) + 1);
      received++;
    });
    const all = await waitFor(() => received >= 200);
    await c.close();
    await p.close();
    return result(all && acked === 200 && received === 200 && outOfOrder === 0,
      `acked=${acked} received=${received} out_of_order=${outOfOrder}`);
  },

  async delay() {
    const topic = createTopic('NDelay');
    const p = await producer('delay');
    await send(p, topic, 'now');
    const sentAt = Date.now();
    await send(p, topic, 'late', m => { m.delayTimeLevel = 1; });
    const stored = new Map();
    const c = await consumer('delay', topic, (body, m) => { stored.set(body, Number(m.storeTimestamp)); });
    const all = await waitFor(() => stored.size === 2);
    const lateMs = (stored.get('late') || 0) - sentAt;
    await c.close();
    await p.close();
    return result(all && lateMs >= 900 && lateMs < 10000, `late_ms=${lateMs}`);
  },

  // Fails twice, then is taken: three deliveries.
  async retry() {
    const topic = createTopic('NRetry');
    const p = await producer('retry');
    await send(p, topic, 'stubborn');
    const times = [];
    const c = await consumer('retry', topic, (_, m) => {
      times.push(m.reconsumeTimes);
      if (times.length < 3) throw new Error('not yet');
    });
    const all = await waitFor(() => times.length === 3);
    await sleep(1500);
    await c.close();
    await p.close();
    return result(all && times.join() === '0,1,2', `reconsume_times=${times.join()}`);
  },

  async broadcast() {
    const topic = createTopic('NBroadcast');
    const p = await producer('broadcast');
    let acked = await send(p, topic, 'm0');
    const seen = [ new Set(), new Set() ];
    const members = [];
    for (const mine of seen) {
      members.push(await consumer('broadcast', topic, body => { mine.add(body); },
        { isBroadcast: true, instanceName: `b${members.length}` }));
    }
    await waitFor(() => seen.every(s => s.size >= 1), 20);
    for (let i = 1; i < 50; i++) acked += await send(p, topic, `m${i}`);
    const all = await waitFor(() => seen.every(s => s.size === 50));
    for (const c of members) await c.close();
    await p.close();
    return result(all && acked === 50, `first=${seen[0].size} second=${seen[1].size} of 50`);
  },

  async tags() {
    const topic = createTopic('NTags');
    const p = await producer('tags');
    for (let i = 0; i < 30; i++) await send(p, topic, `m${i}`, m => { m.tags = [ 'Aa', 'BB', 'C' ][i % 3]; });
    const bodies = [];
    const c = await consumer('tags', topic, body => { bodies.push(body); }, {}, 'Aa || D');
    const all = await waitFor(() => bodies.length >= 10);
    await sleep(500);
    await c.close();
    await p.close();
    return result(all && bodies.length === 10, `deliveries=${bodies.length} of 10`);
  },
};

(async () => {
  let ok = true;
  for (const [ name, one ] of Object.entries(cases)) {
    if (!wanted.includes('all') && !wanted.includes(name)) continue;
    let outcome;
    try {
      outcome = await one();
    } catch (e) {
      outcome = result(false, e.stack.replace(/\n/g, ' '));
    }
    ok = ok && outcome.ok;
    console.log(`case ${name}: ${outcome.ok ? 'PASS' : 'FAIL'} ${outcome.counts}`);
  }
  process.exit(ok ? 0 : 1);
})();
