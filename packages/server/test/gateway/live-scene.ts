import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createScene } from '../support/scene.ts';
import type { Actor, Scene } from '../support/scene.ts';
import type { EnvironmentName } from '../support/service.ts';
import { connect } from '../support/socket.ts';
import type { SocketOptions, TestSocket } from '../support/socket.ts';
import { signToken } from '../support/tokens.ts';

/** A scene whose actors are online. */
export interface LiveScene extends Scene {
  token(of: Actor, claims?: Record<string, unknown>): string;
  online(actor: Actor, options?: SocketOptions): Promise<TestSocket>;
  /** A user with a socket. */
  person(name?: string): Promise<{ actor: Actor; socket: TestSocket }>;
}

/** @param now the service's clock, where a test moves it: tokens are valid by it. */
export function liveScene(url: string, environment: EnvironmentName = 'dev', now?: () => number): LiveScene {
  const scene = createScene(url, environment, now);
  const token = (of: Actor, claims = {}) => signToken({ sub: of.id, ...claims }, { environment, now });
  const online = (actor: Actor, options?: SocketOptions) => connect({ url }, token(actor), options);
  return {
    ...scene,
    token,
    online,
    async person(name) {
      const actor = await scene.actor(name);
      return { actor, socket: await online(actor) };
    },
  };
}

export const text = (cid: string, text = 'hello', more: object = {}) => ({
  cid,
  clientMsgId: randomUUID(),
  text,
  ...more,
});

/** Every event of the conversation from the first one seen, none missing, none twice, in order. */
export function assertContiguous(socket: TestSocket, cid: string): void {
  const seqs = socket.events(cid).map((f) => f.seq as number);
  assert.ok(seqs.length > 0, 'no events at all');
  assert.deepEqual(
    seqs,
    seqs.map((_, i) => seqs[0]! + i),
  );
}
