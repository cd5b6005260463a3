import type { Overview, StorageRecord } from '@parley/protocol';

/** The problems of an environment that need a person, and the headline of the overview. */

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
  const total = (count: (step: Overview['series'][number]) => number): number =>
    overview.series.reduce((sum, step) => sum + count(step), 0);
  const requests = total((step) => step.requests);
  const serverErrors = total((step) => step.serverErrors);
  const refused = total((step) => step.errors) - serverErrors;
  const needs: Need[] = [];
  if (failing > 0)
    needs.push({
      title: counted(failing, 'An endpoint fails', 'endpoints fail'),
      text: `${counted(pending, 'One event waits', 'events wait')}. Attempts continue for about three days; failed events can be replayed for three days.`,
      path: '/webhooks',
      action: 'See the endpoints',
    });
  if (disabled > 0)
    needs.push({
      title: counted(disabled, 'An endpoint is disabled', 'endpoints are disabled'),
      text: 'It gets no events until you enable it.',
      path: '/webhooks',
      action: 'See the endpoints',
    });
  if (sink && sink.error !== null)
    needs.push({
      title: 'Your database refuses writes',
      text: `${counted(sink.backlog, 'One record waits', 'records wait')} with this service; none is lost.`,
      path: '/storage',
      action: 'See the storage',
    });
  if (serverErrors > 0)
    needs.push({
      title: counted(serverErrors, 'A request failed on our side', 'requests failed on our side'),
      text: 'In the last hour. The log lists them.',
      path: '/logs?status=5xx',
      action: 'See the log',
    });
  if (refused >= 10 && refused > requests / 2)
    needs.push({
      title: 'Most requests are refused',
      text: `${refused} of ${requests} requests in the last hour. The log shows the reason of each.`,
      path: '/logs?status=4xx',
      action: 'See the log',
    });
  return needs;
}

export function sentenceOf({ has }: Overview, needs: readonly Need[]): string {
  const [first, ...others] = needs;
  if (first === undefined) return has.messages ? 'All is well' : 'All is well; no messages yet';
  return others.length === 0 ? first.title : `${needs.length} problems need attention`;
}
