// Two rushes on a running dibs, for k6: README.md beside this file says how to
// run it. Each virtual user holds many connections and sends on all of them at
// once, so that 100 of them make 5,000 and 10,000 concurrent requests.
import http from 'k6/http';
import { check, fail, sleep } from 'k6';
import { Counter } from 'k6/metrics';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';

const url = __ENV.URL || 'http://127.0.0.1:8080';
const adminKey = __ENV.ADMIN_KEY || '';
const stock = Number(__ENV.STOCK || 200);
const many = Number(__ENV.MANY || 5000);
const one = Number(__ENV.ONE || 10000);
const vus = Number(__ENV.VUS || 100);
const ramp = Number(__ENV.RAMP || 5);
const oneToken = __ENV.ONE_TOKEN || 'dev_one';

// The file has a head and a line `user,token` for each user.
const tokens = new SharedArray('tokens', () =>
  open(__ENV.USERS || './users.csv').trim().split('\n').slice(1).map((line) => line.trim().split(',')[1]));

const granted = new Counter('granted');
const refused = new Counter('refused');

// A refusal is an answer, not a failure; anything else is one.
http.setResponseCallback(http.expectedStatuses(200, 201, 409));

// rush is one wave: a single iteration for each virtual user.
const rush = (name, startTime) => ({
  executor: 'per-vu-iterations', exec: name, vus, iterations: 1, startTime, maxDuration: '90s',
});

export const options = {
  batch: Math.ceil(Math.max(many, one) / vus),
  batchPerHost: Math.ceil(Math.max(many, one) / vus),
  scenarios: Object.assign({},
    many > 0 && { manyUsers: rush('manyUsers', '0s') },
    one > 0 && { oneUser: rush('oneUser', many > 0 ? `${ramp * 3}s` : '0s') }),
  thresholds: Object.assign({ checks: ['rate==1'], http_req_failed: ['rate==0'] },
    many > 0 && { 'granted{rush:many}': [`count==${Math.min(stock, many, tokens.length)}`] },
    one > 0 && { 'granted{rush:one}': ['count==1'] }),
};

const admin = { headers: { Authorization: `Bearer ${adminKey}`, 'Content-Type': 'application/json' } };

function make(id, title) {
  const campaign = {
    id, kind: 'sale', title, stock: { units: stock },
    starts_at: '2020-01-01T00:00:00Z', ends_at: '2099-01-01T00:00:00Z',
  };
  for (const [path, body] of [['', JSON.stringify(campaign)], [`/${id}/publish`, null]]) {
    const res = http.post(`${url}/v1/campaigns${path}`, body, admin);
    if (res.status >= 300) fail(`making the campaign ${id}: ${res.status} ${res.body}`);
  }
  return id;
}

// Without an admin key the demo campaigns of a fresh `dibs dev` are used.
export function setup() {
  const run = `${Date.now()}`;
  if (adminKey === '') return { run, many: 'phone-noon', one: 'coupon-rain' };
  return { run, many: make(`k6-many-${run}`, 'k6: many users'), one: make(`k6-one-${run}`, 'k6: one user') };
}

// connect opens so many connections, one virtual user after the other, and waits
// until all have theirs: thousands of dials at once would measure how many the
// kernel queues, and not dibs.
function connect(me, connections) {
  sleep(ramp * me / vus);
  const greeting = ['GET', `${url}/healthz`, null, { tags: { name: 'connect' } }];
  http.batch(Array(connections).fill(greeting));
  sleep(Math.max(0, (exec.scenario.startTime - Date.now()) / 1000 + ramp + 1));
}

// wave sends this virtual user's part of a wave of so many requests.
function wave(name, campaign, total, run, tokenOf) {
  const me = exec.scenario.iterationInTest;
  const requests = [];
  for (let i = me; i < total; i += vus) {
    requests.push(['POST', `${url}/v1/campaigns/${campaign}/claims`, '{}', {
      headers: {
        Authorization: `Bearer ${tokenOf(i)}`, 'Content-Type': 'application/json', 'Idempotency-Key': `${run}-${name}-${i}`,
      },
      tags: { rush: name, name: `claim ${name}` },
    }]);
  }
  connect(me, requests.length);
  for (const res of http.batch(requests)) {
    check(res, {
      'granted, or refused for a good reason': (r) =>
        r.status === 201 || (r.status === 409 && ['sold_out', 'limit_reached'].includes(r.json('reason'))),
    });
    if (![201, 409].includes(res.status)) console.warn(`${name}: ${res.status} ${res.error} ${res.body}`);
    (res.status === 201 ? granted : refused).add(1, { rush: name });
  }
}

export function manyUsers(data) {
  wave('many', data.many, many, data.run, (i) => tokens[i % tokens.length]);
}

export function oneUser(data) {
  wave('one', data.one, one, data.run, () => oneToken);
}

// The server's own numbers have the last word.
export function teardown(data) {
  if (adminKey === '') return;
  const due = { many: Math.min(stock, many, tokens.length), one: Math.min(1, one) };
  for (const name of ['many', 'one']) {
    const stats = http.get(`${url}/v1/campaigns/${data[name]}/stats`, admin);
    console.log(`${name}: due ${due[name]}, the server says ${stats.body}`);
    check(stats, { 'the server granted exactly what was due': (r) => r.json('granted') === due[name] });
    http.post(`${url}/v1/campaigns/${data[name]}/end`, null, admin);
  }
  const report = http.get(`${url}/v1/verify?campaign=${data.many}&campaign=${data.one}`, admin);
  check(report, { 'every promise held': (r) => r.json('ok') === true });
}
