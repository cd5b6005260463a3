import type { Overview, StorageRecord } from '@parley/protocol';

/** What in an environment waits for somebody, and the sentence that says how it is doing. */

export interface Need {
  title: string;
  text: string;
  /** After the environment's id. */
  path: string;
  action: string;
}

const counted = (count: number, one: string, more: string): string =>
  count === 1 ? one : `${count} ${more}`;

export function needsOf(overview: Overview, sink: StorageRecord['sink'] | undefined): Need[] {
  const { failing, disabled, pending } = overview.webhooks;
  const serverErrors = overview.series.reduce((sum, step) => sum + step.serverErrors, 0);
  const needs: Need[] = [];
  if (failing > 0)
    needs.push({
      title: counted(failing, 'An endpoint fails', 'endpoints fail'),
      text: `${counted(pending, 'One event waits', 'events wait')}. Attempts go on for about three days; what failed can be replayed for three.`,
      path: '/webhooks',
      action: 'See the endpoints',
    });
  if (disabled > 0)
    needs.push({
      title: counted(disabled, 'An endpoint is disabled', 'endpoints are disabled'),
      text: 'It gets no events until somebody enables it.',
      path: '/webhooks',
      action: 'See the endpoints',
    });
  if (sink && sink.error !== null)
    needs.push({
      title: 'Your database does not take what it is sent',
      text: `${counted(sink.backlog, 'One record waits', 'records wait')} with this service; none is lost.`,
      path: '/storage',
      action: 'See the storage',
    });
  if (serverErrors > 0)
    needs.push({
      title: counted(serverErrors, 'A request failed on our side', 'requests failed on our side'),
      text: 'In the last hour. The log names each.',
      path: '/logs?status=5xx',
      action: 'See the log',
    });
  return needs;
}

export function sentenceOf({ has }: Overview, needs: readonly Need[]): string {
  const [first, ...others] = needs;
  if (first === undefined) return has.messages ? 'All is well' : 'All is well, and nothing was sent yet';
  return others.length === 0 ? first.title : `${needs.length} things need you`;
}
