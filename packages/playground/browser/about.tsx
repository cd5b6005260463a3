import { useEffect, useState } from 'react';
import {
  UserAvatar,
  useConversation,
  useConversationItem,
  useMembers,
  useNotificationLevel,
  usePresence,
  useTitle,
} from '@parley/react';
import { useCalls } from '@parley/react/calls';
import { Search, Sheet } from './controls.tsx';
import { useSession } from './message.tsx';
import { PeoplePicker } from './new-chat.tsx';
import { nameOf } from './people.ts';
import { ensurePeople } from './session.ts';

interface AboutProps {
  conversationId: string;
  onClose: () => void;
  onLeft: () => void;
}

const levels = [
  ['all', 'All messages'],
  ['mentions', 'Those that mention me'],
  ['none', 'None (muted)'],
] as const;

/** Which messages are pushed to this person. */
function Level({ id, onProblem }: { id: string; onProblem: (problem: string) => void }) {
  const { level, set } = useNotificationLevel(id);
  return (
    <label>
      Notify me of{' '}
      <select
        value={level ?? 'all'}
        onChange={(event) =>
          void set(event.target.value as (typeof levels)[number][0]).catch((error: unknown) =>
            onProblem((error as Error).message),
          )
        }
      >
        {levels.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The members and the calls of a conversation. */
export function About({ conversationId, onClose, onLeft }: AboutProps) {
  const { userId } = useSession();
  const conversation = useConversation(conversationId);
  const item = useConversationItem(conversationId);
  const title = useTitle(item);
  const members = useMembers(conversationId);
  const presence = usePresence(members.map((member) => member.userId));
  const [query, setQuery] = useState('');
  const [adding, setAdding] = useState<readonly string[]>([]);
  const [problem, setProblem] = useState('');
  const run = (work: Promise<unknown> | undefined, done: () => void): void =>
    void work?.then(done, (error: unknown) => setProblem((error as Error).message));
  const wanted = query.trim().toLocaleLowerCase();
  const shown = members.filter((member) => nameOf(member.userId).toLocaleLowerCase().includes(wanted));
  const isGroup = item?.type === 'group';
  const mayAdd = isGroup && members.some((m) => m.userId === userId && m.role === 'owner');
  return (
    <Sheet title={title} onClose={onClose}>
      <Level id={conversationId} onProblem={setProblem} />
      <Search label="Search members" value={query} onChange={setQuery} />
      <ul className="demo-people" aria-label="Members">
        {shown.map((member) => (
          <li key={member.userId}>
            <div>
              <UserAvatar userId={member.userId} size={32} presence />
              <span>
                {nameOf(member.userId)}
                {member.userId === userId ? ' (you)' : ''}
              </span>
              <small>
                {member.role === 'owner' ? 'owner · ' : ''}
                {presence.get(member.userId)?.online ? 'online' : 'offline'}
              </small>
            </div>
          </li>
        ))}
      </ul>
      {shown.length === 0 && wanted !== '' ? <p>Nobody of that name.</p> : null}
      {mayAdd ? (
        <details>
          <summary>Add people</summary>
          <PeoplePicker without={members.map((m) => m.userId)} chosen={adding} onChange={setAdding} />
          <button
            type="button"
            className="demo-button"
            disabled={adding.length === 0}
            onClick={() =>
              run(
                ensurePeople(adding).then(() => conversation?.addMembers(adding)),
                () => setAdding([]),
              )
            }
          >
            Add {adding.length > 0 ? adding.map(nameOf).join(', ') : 'people'}
          </button>
        </details>
      ) : null}
      <PastCalls id={conversationId} />
      <p role="alert">{problem}</p>
      {isGroup ? (
        <button
          type="button"
          className="demo-button"
          data-kind="danger"
          onClick={() => run(conversation?.leave(), onLeft)}
        >
          Leave the group
        </button>
      ) : null}
    </Sheet>
  );
}

interface PastCall {
  id: string;
  text: string;
}

const timeOf = (iso: string): string =>
  new Date(iso).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });

function PastCalls({ id }: { id: string }) {
  const calls = useCalls();
  const { userId } = useSession();
  const [past, setPast] = useState<readonly PastCall[]>([]);
  useEffect(() => {
    let over = false;
    calls.history(id).then(
      (all) => {
        if (over) return;
        const ended = all.filter(({ status }) => status === 'ended').slice(0, 10);
        setPast(
          ended.map((call) => {
            const kind = call.kind === 'video' ? 'Video call' : 'Call';
            const by = call.createdBy === userId ? 'you' : nameOf(call.createdBy);
            const missed = call.answeredAt === null;
            return {
              id: call.id,
              text: `${missed ? `Missed ${kind.toLowerCase()}` : kind} by ${by}, ${timeOf(call.createdAt)}`,
            };
          }),
        );
      },
      () => undefined, // Without a network there is no history.
    );
    return () => void (over = true);
  }, [calls, id, userId]);
  if (past.length === 0) return null;
  return (
    <>
      <h3>Calls</h3>
      <ul className="demo-calls">
        {past.map((call) => (
          <li key={call.id}>{call.text}</li>
        ))}
      </ul>
    </>
  );
}
