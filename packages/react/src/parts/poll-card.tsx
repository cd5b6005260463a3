import type { CSSProperties } from 'react';
import type { MessageItem } from '@parley/client';
import { useParley } from '../hooks/context.ts';
import { usePoll } from '../hooks/polls.ts';
import { Time } from './time.tsx';

/** The poll of a message: radio buttons or boxes to vote with, and the results as bars. Nothing where there is none. */
export default function PollCard({ item }: { item: MessageItem }) {
  const { strings, announcer } = useParley();
  const { poll, options, total, closed, canVote, canClose, toggle, close } = usePoll(item);
  if (!poll) return null;
  // The client takes a refused vote back; screen readers get an announcement.
  const failed = (): void => announcer.say(strings.notVoted);
  const single = options.find(({ own }) => own && !poll.multiple);
  return (
    <fieldset className="parley-poll" disabled={!canVote}>
      <legend dir="auto">{poll.question}</legend>
      {options.map(({ id, text, count, share, own }) => (
        <label key={id} style={{ '--parley-share': `${Math.round(share * 100)}%` } as CSSProperties}>
          <input
            type={poll.multiple ? 'checkbox' : 'radio'}
            name={item.key}
            checked={own}
            aria-label={strings.pollOption(text, count)}
            onChange={() => void toggle(id).catch(failed)}
          />
          <span dir="auto">{text}</span>
          <small>{count}</small>
        </label>
      ))}
      <small className="parley-poll-foot">
        <span>{strings.votes(total)}</span>
        {poll.anonymous ? <span>{strings.anonymous}</span> : null}
        {closed ? (
          <span>{strings.pollClosed}</span>
        ) : poll.closesAt === undefined ? null : (
          <span>
            {strings.pollOpenUntil} <Time at={poll.closesAt} day />
          </span>
        )}
        {single && canVote ? (
          <button type="button" onClick={() => void toggle(single.id).catch(failed)}>
            {strings.takeVoteBack}
          </button>
        ) : null}
        {canClose ? (
          <button type="button" onClick={() => void close().catch(failed)}>
            {strings.closePoll}
          </button>
        ) : null}
      </small>
    </fieldset>
  );
}
