import { compose } from '@parley/client';
import type { Client, Mention } from '@parley/client';
import { lampPicture, lampSize } from './picture.ts';
import { bot, firstName, samples } from './people.ts';
import { clientOf, ensurePeople } from './session.ts';

/** The first conversations of a new user, so that the demo is not empty. */

const at = encodeURIComponent;

async function create(by: Client, body: object): Promise<string> {
  return (await by.wire.http<{ id: string }>('POST', '/conversations', { body })).id;
}

interface Said {
  text?: string;
  replyTo?: string;
  attachments?: string[];
  mentions?: Mention[];
}
/** @param clientMsgId says which message it is: another tab that does the same adds nothing. */
async function say(by: Client, chat: string, clientMsgId: string, said: Said): Promise<string> {
  const body = { clientMsgId, ...said };
  return (await by.wire.http<{ id: string }>('POST', `/conversations/${at(chat)}/messages`, { body })).id;
}

async function picture(by: Client, chat: string): Promise<string[]> {
  try {
    return [(await by.uploads.upload(chat, await lampPicture(), lampSize)).id];
  } catch {
    return []; // Without a storage there are no pictures, and the rest still works.
  }
}

export async function seed(me: string): Promise<void> {
  const [customer, packer, driver] = samples.filter(({ id }) => id !== me && id !== 'nora-lind');
  const own = clientOf(me);
  await ensurePeople([me, bot.id, customer!.id, packer!.id, driver!.id]);
  const [customers, packers, drivers] = [customer!, packer!, driver!].map(({ id }) => clientOf(id));

  const table = { type: 'group', members: [me, driver!.id], name: 'Packing table' };
  const group = await create(packers!, table);
  await say(packers!, group, `seed-${me}-1`, { text: 'Two lamps left in oak, none in ash.' });
  await say(drivers!, group, `seed-${me}-1`, {
    ...compose()
      .mention({ id: me, name: firstName(me) })
      .text(', the courier comes at four today.')
      .toDraft(),
  });

  const direct = await create(customers!, { type: 'direct', members: [me] });
  await say(customers!, direct, `seed-${me}-1`, {
    text: 'Good morning! The lamp arrived, but the arm wobbles. I think a screw is missing.',
    attachments: await picture(customers!, direct),
  });
  const answer = await say(own, direct, `seed-${customer!.id}-1`, {
    text: `Sorry about that, ${firstName(customer!.id)}. Easy to fix: it is the M4 at the elbow.`,
  });
  await say(customers!, direct, `seed-${me}-2`, {
    text: 'Found it. Could you send me one?',
    replyTo: answer,
  });

  const pip = clientOf(bot.id);
  const chat = await create(pip, { type: 'direct', members: [me] });
  await say(pip, chat, `seed-${me}-1`, {
    text: `Hello ${firstName(me)}. I am a bot that runs in this page: I read, type and answer, so that you need nobody else. Write me anything, or “help”.`,
  });
}
