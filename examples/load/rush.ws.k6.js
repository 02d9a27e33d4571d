// The two rushes of rush.k6.js over WebSockets (GET /v1/ws): README.md beside this
// file says how to run it. Every connection is open and signed in before the first
// claim; then all claims are sent at once.
import http from 'k6/http';
import { WebSocket } from 'k6/websockets';
import { setTimeout } from 'k6/timers';
import { check, fail } from 'k6';
import { Counter } from 'k6/metrics';
import { SharedArray } from 'k6/data';
import exec from 'k6/execution';

const url = __ENV.URL || 'http://127.0.0.1:8080';
const adminKey = __ENV.ADMIN_KEY || '';
const stock = Number(__ENV.STOCK || 200);
const many = Number(__ENV.MANY || 5000);
const one = Number(__ENV.ONE || 64);
const vus = Number(__ENV.VUS || 100);
const ramp = Number(__ENV.RAMP || 5);
const oneToken = __ENV.ONE_TOKEN || 'dev_one';

// A server takes 1,000 connections of one address, 8 of one user, and 8 claims at a
// time on each (docs/GATEWAY.md).
const sockets = Math.min(many, Number(__ENV.SOCKETS || 800));
const socketsOfOne = Math.min(one, 8);
const underWay = 8;

// The file has a head and a line `user,token` for each user. Each connection is of
// another user.
const tokens = new SharedArray('tokens', () =>
  open(__ENV.USERS || './users.csv').trim().split('\n').slice(1).map((line) => line.trim().split(',')[1]));

const granted = new Counter('granted');
const refused = new Counter('refused');

const rush = (name, startTime) => ({
  executor: 'per-vu-iterations', exec: name, vus, iterations: 1, startTime, maxDuration: '90s',
});

export const options = {
  scenarios: Object.assign({},
    many > 0 && { manyUsers: rush('manyUsers', '0s') },
    one > 0 && { oneUser: rush('oneUser', many > 0 ? `${ramp * 3}s` : '0s') }),
  thresholds: Object.assign({ checks: ['rate==1'], http_req_failed: ['rate==0'] },
    many > 0 && { 'granted{rush:many}': [`count==${Math.min(stock, sockets, tokens.length)}`] },
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
  if (many > underWay * sockets || one > underWay * socketsOfOne) fail('more claims than connections may have under way');
  const run = `${Date.now()}`;
  if (adminKey === '') return { run, many: 'phone-noon', one: 'coupon-rain' };
  return { run, many: make(`k6-ws-many-${run}`, 'k6: many users'), one: make(`k6-ws-one-${run}`, 'k6: one user') };
}

// hold opens a connection, signs in, sends its claims when all begin, and closes
// when each has its answer.
function hold(name, campaign, token, ids, begin) {
  const waiting = new Set(ids);
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/v1/ws`);
  socket.onopen = () => socket.send(JSON.stringify({ type: 'auth', token }));
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === 'welcome') {
      setTimeout(() => {
        for (const id of ids) socket.send(JSON.stringify({ type: 'claim', id, campaign_id: campaign }));
      }, Math.max(1, begin - Date.now()));
      return;
    }
    const good = check(message, {
      'granted, or refused for a good reason': (m) =>
        m.type === 'result' && ['granted', 'sold_out', 'limit_reached'].includes(m.outcome),
    });
    if (!good) console.warn(`${name}: ${data}`);
    if (waiting.delete(message.id)) (message.outcome === 'granted' ? granted : refused).add(1, { rush: name });
    if (waiting.size === 0) socket.close();
  };
  socket.onclose = () => check(waiting, { 'every claim was answered': (w) => w.size === 0 });
}

// wave opens this virtual user's part of the connections, one after the other.
function wave(name, campaign, claims, connections, run, tokenOf) {
  const begin = exec.scenario.startTime + (ramp + 1) * 1000;
  for (let s = exec.scenario.iterationInTest; s < connections; s += vus) {
    const ids = [];
    for (let i = s; i < claims; i += connections) ids.push(`${run}-${name}-${i}`);
    setTimeout(() => hold(name, campaign, tokenOf(s), ids, begin), 1 + (1000 * ramp * s) / connections);
  }
}

export function manyUsers(data) {
  wave('many', data.many, many, sockets, data.run, (s) => tokens[s % tokens.length]);
}

export function oneUser(data) {
  wave('one', data.one, one, socketsOfOne, data.run, () => oneToken);
}

// The server's own numbers have the last word.
export function teardown(data) {
  if (adminKey === '') return;
  const due = { many: Math.min(stock, sockets, tokens.length), one: Math.min(1, one) };
  for (const name of ['many', 'one']) {
    const stats = http.get(`${url}/v1/campaigns/${data[name]}/stats`, admin);
    console.log(`${name}: due ${due[name]}, the server says ${stats.body}`);
    check(stats, { 'the server granted exactly what was due': (r) => r.json('granted') === due[name] });
    http.post(`${url}/v1/campaigns/${data[name]}/end`, null, admin);
  }
  const report = http.get(`${url}/v1/verify?campaign=${data.many}&campaign=${data.one}`, admin);
  check(report, { 'every promise held': (r) => r.json('ok') === true });
}
