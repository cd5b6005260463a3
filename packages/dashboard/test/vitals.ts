import type { BrowserContext, Page } from 'playwright-core';

/** What a person feels of a page's beginning: whether things jump, and when it can be used. */

interface Seen {
  /** The sum of all layout shifts; 0: nothing jumped. */
  shift: number;
  /** What moved, for messages. */
  moved: string[];
  /** Ends of tasks that held the page up for more than 50 ms. */
  tasks: number[];
}

/** Watches every page of the context from its first moment. */
export const watchVitals = (context: BrowserContext): Promise<unknown> =>
  context.addInitScript(() => {
    const seen: Seen = { shift: 0, moved: [], tasks: [] };
    Object.assign(globalThis, { seen });
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries() as (PerformanceEntry & {
        value: number;
        sources: { node?: Node; previousRect: DOMRect; currentRect: DOMRect }[];
      })[]) {
        seen.shift += entry.value;
        for (const { node, previousRect, currentRect } of entry.sources) {
          const element = node instanceof Element ? node : node?.parentElement;
          seen.moved.push(
            `${element?.tagName}.${element?.className} ${previousRect.y},${previousRect.height} to ${currentRect.y},${currentRect.height} at ${Math.round(entry.startTime)} ms`,
          );
        }
      }
    }).observe({ type: 'layout-shift', buffered: true });
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) seen.tasks.push(entry.startTime + entry.duration);
    }).observe({ type: 'longtask', buffered: true });
  });

export const vitals = (page: Page): Promise<Seen> =>
  page.evaluate(() => (globalThis as unknown as { seen: Seen }).seen);
