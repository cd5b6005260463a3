import { ApiError } from '@parley/protocol';
import type { NewPoll, Poll } from '@parley/protocol';
import type { Context } from '../context.ts';
import { requireFeature } from '../enabled.ts';
import { moment } from '../time.ts';
import { isFuture } from './sql.ts';

const invalid = (param: string, message: string) =>
  new ApiError('invalid_request', { param: `poll.${param}`, message: `poll.${param} ${message}` });

/** The poll of a new message as it is kept (polls#poll). @param repeated whether it was sent before: then the time does not matter. */
export async function newPoll(
  { env, db }: Context,
  given: NewPoll,
  repeated: () => Promise<boolean>,
): Promise<Poll> {
  requireFeature(env, 'polls');
  const { question, multiple = false, anonymous = false } = given;
  const options = given.options.map(({ id, text }, i) => {
    if (id !== undefined && id !== i + 1)
      throw invalid(`options[${i}].id`, 'must be the place of the option in the list, from 1.');
    return { id: i + 1, text };
  });
  const poll = { question, options, multiple, anonymous };
  if (given.closesAt === undefined) return poll;
  const closesAt = moment('poll.closesAt', given.closesAt);
  if (!(await isFuture(db, closesAt)) && !(await repeated()))
    throw invalid('closesAt', 'must be in the future.');
  return { ...poll, closesAt };
}
