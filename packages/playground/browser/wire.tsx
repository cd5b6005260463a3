import { memo, useEffect, useRef, useState } from 'react';
import type { UIEvent } from 'react';
import type { MessageItem } from '@parley/client';
import { useMessages, useReceipt } from '@parley/react';
import { IconButton } from './controls.tsx';
import { aboutOf, isQuiet, secondsOf, typeOf } from './frames.ts';
import { Icon } from './icons.tsx';
import { useSession } from './message.tsx';
import type { Frame } from './network.ts';
import { useValue } from './store.ts';

const maxText = 4_000;
const ways = { out: 'you say', in: 'you hear', none: 'the connection' };

/** The frames of this person's socket as they go by, and where the last message is. */
export function Wire({ conversationId }: { conversationId: string | null }) {
  const { network } = useSession();
  const frames = useValue(network.frames);
  const paused = useValue(network.paused);
  const [all, setAll] = useState(false);
  const [open, setOpen] = useState<number | null>(null);
  const list = useRef<HTMLDivElement>(null);
  const shown = all ? frames : frames.filter((frame) => typeOf(frame) !== 'hb');
  const last = shown.at(-1)?.no;
  // Whoever reads further up is left there.
  const atEnd = useRef(true);
  useEffect(() => {
    if (atEnd.current) list.current!.scrollTop = list.current!.scrollHeight;
  }, [last]);
  const onScroll = ({ currentTarget: box }: UIEvent<HTMLDivElement>): void => {
    atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  };
  return (
    <section className="demo-wire" aria-label="Wire">
      <div className="demo-wire-head">
        <span className="demo-key" data-way="out">
          you say
        </span>
        <span className="demo-key" data-way="in">
          you hear
        </span>
        <span className="demo-count">{shown.length} frames</span>
        <IconButton icon="wire" label="Show heartbeats" pressed={all} onPress={() => setAll(!all)} />
        <IconButton
          icon={paused ? 'play' : 'pause'}
          label="Pause"
          pressed={paused}
          onPress={() => network.paused.set(!paused)}
        />
        <IconButton icon="clear" label="Clear" onPress={network.clear} />
      </div>
      <div
        ref={list}
        className="demo-frames"
        role="log"
        aria-live="off"
        aria-label="Frames"
        tabIndex={0}
        onScroll={onScroll}
      >
        <ol>
          {shown.map((frame) => (
            <Row key={frame.no} frame={frame} open={frame.no === open} onOpen={setOpen} />
          ))}
        </ol>
      </div>
      {conversationId === null ? null : <LastMessage id={conversationId} />}
    </section>
  );
}

interface RowProps {
  frame: Frame;
  open: boolean;
  onOpen: (no: number | null) => void;
}
const Row = memo(function Row({ frame, open, onOpen }: RowProps) {
  return (
    <li className="demo-frame" data-way={frame.way} data-quiet={isQuiet(frame) || undefined}>
      <button type="button" aria-expanded={open} onClick={() => onOpen(open ? null : frame.no)}>
        <i>
          <Icon name={frame.way} size={12} />
          <span className="parley-hidden">{ways[frame.way]}</span>
        </i>
        <b>{typeOf(frame)}</b>
        <span>{aboutOf(frame)}</span>
        <time>{secondsOf(frame.at)}</time>
      </button>
      {open ? <pre tabIndex={0}>{JSON.stringify(frame.data, null, 2).slice(0, maxText)}</pre> : null}
    </li>
  );
});

/** The outbox of the conversation, and the way of the last message. */
function LastMessage({ id }: { id: string }) {
  const { userId } = useSession();
  const { items } = useMessages(id);
  const waiting = items.filter(({ status }) => status === 'pending');
  const last = items.findLast(({ senderId, deletedAt }) => senderId === userId && deletedAt === null);
  if (!last) return null;
  return (
    <div className="demo-trailbox">
      {waiting.length > 0 ? (
        <div className="demo-outbox">
          <b>Outbox: {waiting.length === 1 ? 'one message waits' : `${waiting.length} messages wait`}</b>
          <ol>
            {waiting.slice(0, 3).map((item) => (
              <li key={item.key}>{item.text ?? 'Files'}</li>
            ))}
          </ol>
        </div>
      ) : null}
      <Trail item={last} />
    </div>
  );
}

const steps = ['kept here', 'committed', 'delivered', 'read'];
const reached = { failed: 1, waiting: 1, sent: 2, delivered: 3, read: 4 };

function Trail({ item }: { item: MessageItem }) {
  const { state } = useReceipt(item.conversationId, item);
  return (
    <>
      <p>
        <b>{item.seq === null ? 'not numbered yet' : `seq ${item.seq}`}</b>{' '}
        <span>{item.text ?? 'Files'}</span>
      </p>
      <ol className="demo-trail" aria-label="Where the last message is">
        {steps.map((step, i) => (
          <li key={step} data-on={i < reached[state] || undefined}>
            {step}
            <span className="parley-hidden">{i < reached[state] ? ': yes' : ': not yet'}</span>
          </li>
        ))}
      </ol>
    </>
  );
}
