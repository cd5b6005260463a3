import { Group, Text, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { useCall, useRows } from '../api/hooks.ts';
import { Person } from '../ui/people.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { Tag } from '../ui/tag.tsx';
import { Time } from '../ui/time.tsx';
import { actionWords, countOf, reasonWords, saidIn, statusTones } from './moderation-words.ts';

const most = 6;

/** The reported user: current restrictions and earlier reports. */
export function UserHistory(props: {
  userId: string;
  except: string;
  nameOf: (id: string) => string;
}): ReactNode {
  const { userId } = props;
  const user = useCall('users.get', { userId });
  const restrictions = useRows('users.listRestrictions', { userId, limit: 10 });
  const reports = useRows('reports.list', { targetUserId: userId, limit: most });
  const earlier = reports.items?.filter(({ id }) => id !== props.except);
  // An erased user is not found, and has no history.
  const error = [reports.error, user.error?.status === 404 ? null : user.error].find((e) => e);
  const held = restrictions.items ?? [];
  const free = user.data && !user.data.deactivatedAt && restrictions.items && held.length === 0;
  return (
    <section aria-label="The user">
      <Group gap="xs" mb={6}>
        <Title order={3} size="h5">
          <Person id={userId} name={props.nameOf(userId)} />
        </Title>
        {user.data?.deactivatedAt ? <Tag tone="bad">deactivated</Tag> : null}
        {held.map(({ kind, conversationId, until }) => (
          <Tag key={conversationId ?? ''} tone="warn">
            {kind === 'ban' ? 'banned' : 'silenced'} {conversationId === null ? 'everywhere' : 'in a group'}
            {until === null ? (
              ''
            ) : (
              <>
                , until <Time at={until} />
              </>
            )}
          </Tag>
        ))}
        {free ? <Tag tone="ok">no restrictions</Tag> : null}
      </Group>
      {error ? <Failed error={error} retry={reports.refresh} /> : null}
      {!reports.items && !error ? <Loading what="earlier reports" /> : null}
      {earlier?.length === 0 ? <Text c="dimmed">No other reports about this user.</Text> : null}
      <ul className="desk-plain">
        {earlier?.map((item) => (
          <li key={item.id}>
            <Group gap="xs">
              <Tag tone={statusTones[item.status]}>{item.status}</Tag>
              <Text size="sm" c="dimmed">
                {countOf(item.reports)}, {reasonWords[item.reasons[0]!.reason]}, <Time at={item.lastAt} />
                {item.actions.length > 0 ? `: ${item.actions.map((a) => actionWords[a]).join(', ')}` : ''}
              </Text>
            </Group>
            <Text size="sm" truncate dir="auto">
              {saidIn(item)}
            </Text>
          </li>
        ))}
      </ul>
    </section>
  );
}
