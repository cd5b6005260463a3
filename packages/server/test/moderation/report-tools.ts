import type { Answer, Api } from '../support/api.ts';
import type { Actor, Scene } from '../support/scene.ts';

/** What tests of reports do. */

export const report = (by: Api, fields: object, reason = 'abuse'): Promise<Answer> =>
  by('POST', '/v1/reports', { reason, ...fields });
export const queue = async (by: Api, query: string): Promise<Answer['body'][]> =>
  (await by('GET', `/v1/reports?${query}`)).body.data;
export const decide = (by: Api, id: string, fields: object): Promise<Answer> =>
  by('PATCH', `/v1/reports/${id}`, fields);

export interface World {
  owner: Actor;
  ben: Actor;
  carl: Actor;
  stranger: Actor;
  cid: string;
  message: Answer['body'];
}

/** A group in which ben said something. */
export async function world(scene: Scene, text = 'a nasty word'): Promise<World> {
  const [owner, ben, carl, stranger] = (await Promise.all(
    ['owner', 'ben', 'carl', 'stranger'].map((name) => scene.actor(name)),
  )) as [Actor, Actor, Actor, Actor];
  const { id: cid } = await scene.group(owner, [ben, carl]);
  const mentions = [{ type: 'user', userId: carl.id }];
  return { owner, ben, carl, stranger, cid, message: await scene.send(ben, cid, { text, mentions }) };
}
