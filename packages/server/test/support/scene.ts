import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createApi, serverApi } from './api.ts';
import type { Answer, Api } from './api.ts';
import type { EnvironmentName } from './service.ts';
import { connect } from './socket.ts';
import type { SocketOptions, TestSocket } from './socket.ts';
import { signToken } from './tokens.ts';

/** A user that nobody else in the test file has, with its client. */
export interface Actor {
  id: string;
  api: Api;
}

/** Users and conversations for one test; ids never repeat, so tests share a service without meeting. */
export interface Scene {
  server: Api;
  actor(name?: string): Promise<Actor>;
  token(of: Actor, claims?: Record<string, unknown>): string;
  online(actor: Actor, options?: SocketOptions): Promise<TestSocket>;
  /** A user with a socket. */
  person(name?: string): Promise<{ actor: Actor; socket: TestSocket }>;
  group(
    owner: Actor | null,
    members: Actor[],
    fields?: Record<string, unknown>,
  ): Promise<{ id: string; lastSeq: number }>;
  direct(a: Actor, b: Actor): Promise<{ id: string; lastSeq: number }>;
  /** Sends as the user, or as the system. */
  send(from: Actor | null, conversation: string, fields?: Record<string, unknown>): Promise<Answer['body']>;
  /** The user's list item of the conversation. */
  item(of: Actor, conversation: string): Promise<Answer['body']>;
  events(conversation: string, after?: number): Promise<Answer['body'][]>;
}

/** @param now the service's clock, where a test moves it. */
export function createScene(url: string, environment: EnvironmentName = 'dev', now?: () => number): Scene {
  const server = serverApi(url, environment);
  const created = async (body: Record<string, unknown>) => {
    const answer = await server('POST', '/v1/conversations', body);
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return answer.body as { id: string; lastSeq: number };
  };
  const actor = async (name = 'user'): Promise<Actor> => {
    const id = `${name}-${randomUUID()}`;
    assert.equal((await server('PUT', `/v1/users/${id}`, {})).status, 200);
    return { id, api: createApi(url, signToken({ sub: id }, { environment, now })) };
  };
  const token = (of: Actor, claims = {}) => signToken({ sub: of.id, ...claims }, { environment, now });
  const online = (of: Actor, options?: SocketOptions) => connect({ url }, token(of), options);
  return {
    server,
    actor,
    token,
    online,
    async person(name) {
      const one = await actor(name);
      return { actor: one, socket: await online(one) };
    },
    group: (owner, members, fields = {}) =>
      created({
        type: 'group',
        members: members.map((m) => m.id),
        ...(owner ? { ownerId: owner.id } : {}),
        ...fields,
      }),
    direct: (a, b) => created({ type: 'direct', members: [a.id, b.id] }),
    async send(from, conversation, fields = { text: 'hello' }) {
      const body = from ? { clientMsgId: randomUUID(), ...fields } : fields;
      const answer = await (from?.api ?? server)('POST', `/v1/conversations/${conversation}/messages`, body);
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
      return answer.body;
    },
    async item(of, conversation) {
      const { body } = await of.api('GET', '/v1/conversations?limit=200');
      return body.data.find((c: { id: string }) => c.id === conversation);
    },
    async events(conversation, after = 0) {
      const { body } = await server(
        'GET',
        `/v1/conversations/${conversation}/events?after=${after}&limit=200`,
      );
      return body.data;
    },
  };
}
