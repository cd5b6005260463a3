import type { QueryClient } from '@tanstack/react-query';
import { areaOf } from './areas.ts';
import { callQuery, pagesQuery } from './api/hooks.ts';
import { sessionQuery } from './api/session.ts';
import { first } from './first.ts';

/** Milliseconds after which the frame is shown with the data that has arrived. */
const slowMs = 300;

/**
 * Requests everything that the first screen needs, at once and before anything is drawn: the session, the page's script, and the
 * page's data. Drawing once with all of it takes half the time of drawing an empty page first.
 */
export async function begin(client: QueryClient, base: string): Promise<void> {
  const at = location.pathname.slice(base.length).replace(/\/$/, '');
  const env = at.split('/')[1] ?? null;
  const area = areaOf(at, null) ?? areaOf(at, env ?? '');
  const all = Promise.all([
    client.prefetchQuery(sessionQuery),
    // A script that does not come is asked for again by the page, which says so.
    area?.load().catch(() => undefined),
    ...(env !== null && area && location.search === '' && at === `/${env}${area.path}`
      ? (first[area.path] ?? [])
      : []
    ).map(([name, input]) =>
      'limit' in input
        ? client.prefetchInfiniteQuery(pagesQuery(name, input as never, env))
        : client.prefetchQuery(callQuery(name, input as never, env)),
    ),
  ]);
  await Promise.race([all, new Promise((done) => setTimeout(done, slowMs))]);
}
