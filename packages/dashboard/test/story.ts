import { serverApi } from '../../server/test/support/api.ts';
import { connect } from '../../server/test/support/socket.ts';
import type { PgDb } from '../../server/src/platform/postgres/db.ts';

/** A shop with people who talk, for pictures: its names and figures are made up. */

const people = {
  nora: 'Nora Lindqvist',
  tomas: 'Tomás Barreiro',
  ines: 'Ines Rocha',
  ada: 'Ada Demir',
  mei: 'Mei Okafor',
  sami: 'Sami Koskinen',
  jonas: 'Jonas Aalto',
};

export interface Story {
  conversation: string;
  /** What Jonas has not got. */
  message: string;
}

export async function tellStory(url: string, db: PgDb): Promise<Story> {
  const server = serverApi(url, 'dev');
  const ok = async (...call: Parameters<typeof server>) => {
    const { status, body } = await server(...call);
    if (status >= 300) throw new Error(JSON.stringify(body));
    return body;
  };
  for (const [id, name] of Object.entries(people)) await ok('PUT', `/v1/users/${id}`, { name });
  const groups: [string, string[]][] = [
    ['Packing table', ['nora', 'ines', 'mei', 'jonas']],
    ['Returns', ['nora', 'ada', 'sami']],
    ['Workshop', ['mei', 'sami']],
  ];
  for (const [name, members] of groups)
    await ok('POST', '/v1/conversations', { type: 'group', name, members, ownerId: members[0] });
  const { id: conversation } = await ok('POST', '/v1/conversations', {
    type: 'direct',
    members: ['nora', 'tomas'],
  });
  const say = (cid: string, senderId: string, text: string) =>
    ok('POST', `/v1/conversations/${cid}/messages`, { senderId, text });
  for (const [from, text] of [
    ['tomas', 'The lamp is here, but the arm wobbles. Is a screw missing?'],
    ['nora', 'Sorry about that, Tomás. Easy to fix: it is the M4 at the elbow.'],
    ['tomas', 'Found it. Is this the right one?'],
    ['nora', 'That’s the one. I put it in the post today, no charge.'],
  ] as const)
    await say(conversation, from, text);
  const { id: direct } = await ok('POST', '/v1/conversations', {
    type: 'direct',
    members: ['nora', 'jonas'],
  });
  const { id: message } = await say(direct, 'nora', 'Can you take the early shift?');
  for (const id of ['nora', 'tomas', 'ines', 'mei']) {
    const { token } = await ok('POST', '/v1/tokens', { userId: id });
    await connect({ url }, token as string);
  }
  await db.query(`UPDATE environments SET name = 'Lumen shop', local = true WHERE id = 'env_dev'`);
  await db.query(`UPDATE accounts SET name = 'Nora Lindqvist'`);
  await db.query(
    `INSERT INTO activity (env, at, messages, requests, errors, server_errors, socket_errors, webhooks_ok, webhooks_failed)
     SELECT e.no, date_trunc('minute', now()) - m * interval '1 minute',
            (420 + 160 * sin(m / 7.0) + 60 * cos(m * 2.3))::bigint, (1300 + 380 * sin(m / 9.0 + 1) + 140 * cos(m * 1.7))::bigint,
            0, 0, 0, 0, 0
     FROM environments e, generate_series(0, 59) m WHERE e.id = 'env_dev'
     ON CONFLICT (env, at) DO UPDATE SET messages = excluded.messages, requests = excluded.requests`,
  );
  return { conversation, message };
}
