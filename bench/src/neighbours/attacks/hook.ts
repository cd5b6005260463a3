import { once } from 'node:events';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Caller, group, names, prepared, Tally, unique } from '../kit.ts';
import type { Attack, Strike, Target } from '../kit.ts';

/** Against those who wait for an answer of somebody else's server. */

const senders = 500;
/** Milliseconds. A hook that is set anew is believed to work: the service asks it again at once. */
const setAgainMs = 500;

const piece = Buffer.alloc(65_536, ' ');
function pour(response: ServerResponse, left = 16_384): void {
  for (; left > 0 && !response.destroyed; left--)
    if (!response.write(piece)) return void response.once('drain', () => pour(response, left - 1));
}

/** What the receiver does to one request after the other: it hangs, drips, sends 1 GB, redirects, lies. */
const answers: readonly ((response: ServerResponse) => void)[] = [
  () => undefined,
  (response) => {
    const timer = setInterval(() => response.write(' '), 50);
    response.writeHead(200).on('close', () => clearInterval(timer));
  },
  (response) => pour(response.writeHead(200)),
  (response) => void response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
  (response) => void response.writeHead(200).end('no JSON'),
];

/** 500 connections that send as fast as they may, without a hook: what they cost by themselves. */
export const manySenders: Attack = (target) => sending(target, false);
/** The same with a before-send hook that never answers well, set again and again. */
export const hostileHook: Attack = (target) => sending(target, true);

async function sending(target: Target, hooked: boolean): Promise<Strike> {
  const cid = await prepared(target, (caller) => group(caller, names(unique('asked'), 2)));
  return async (deadline) => {
    let asked = 0;
    const receiver = createServer((request, response) => {
      request.resume().on('end', () => answers[asked++ % answers.length]!(response));
      response.on('error', () => undefined);
    });
    receiver.listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const caller = new Caller(target, senders, deadline);
    const tally = new Tally();
    const set = async (): Promise<void> => {
      while (hooked && !deadline.over) {
        const body = { url, timeoutMs: 3_000, servers: true, onFailure: 'allow' };
        await caller.call('PUT', '/v1/hooks/before-send', { body });
        await deadline.pause(setAgainMs);
      }
    };
    const send = async (): Promise<void> => {
      while (!deadline.over) {
        const body = { text: 'asked about' };
        const { status } = await caller.call('POST', `/v1/conversations/${cid}/messages`, { body });
        tally.add(status);
        if (status < 200 || status >= 400) await deadline.pause(100);
      }
    };
    await Promise.all([set(), ...Array.from({ length: senders }, send)]);
    const { count, text } = tally.done(hooked ? `messages, ${asked} calls of the hook` : 'messages');
    receiver.closeAllConnections();
    receiver.close();
    const last = new Caller(target, 1);
    await last.call('DELETE', '/v1/hooks/before-send');
    last.end();
    return { count, text };
  };
}
