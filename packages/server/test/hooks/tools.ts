import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Answer, Api } from '../support/api.ts';
import type { Actor } from '../support/scene.ts';
import type { Answer as Say, Receiver } from '../webhooks/receiver.ts';

export const beforeSend = '/v1/hooks/before-send';

export async function setHook(server: Api, url: string, fields: object = {}): Promise<Answer['body']> {
  const { status, body } = await server('PUT', beforeSend, { url, timeoutMs: 3_000, ...fields });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

export const json = (res: ServerResponse, body: unknown): void =>
  void res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));

/** Decides by what a text begins with: `no …` is rejected, `re …` rewritten, all else allowed. */
export const decide: Say = ({ data }, res) => {
  const text = (data.message.text ?? '') as string;
  if (text.startsWith('no')) return json(res, { action: 'reject', reason: 'Be kind.' });
  if (text.startsWith('re')) return json(res, { action: 'rewrite', text: `kind ${text.length}` });
  return void res.writeHead(204).end();
};

export const say = (
  by: Actor,
  cid: string,
  fields: string | object,
  clientMsgId: string = randomUUID(),
): Promise<Answer> =>
  by.api('POST', `/v1/conversations/${cid}/messages`, {
    clientMsgId,
    ...(typeof fields === 'string' ? { text: fields } : fields),
  });

export const askedAbout = (receiver: Receiver, text: string): number =>
  receiver.received.filter(({ data }) => data?.message?.text === text).length;
