import type { Opened } from './browser.ts';

/** What is measured in a page. A page gives `page.open()`, `page.arrive()` and `page.rendered`, and says where it scrolls. */

export interface Subject {
  name: string;
  /** The rows, and what scrolls them. */
  row: string;
  scroller: string;
  field: string;
}

interface InPage {
  open(): void;
  arrive(): void;
  rendered: string[];
}
declare const page: InPage;

/** From the click on a conversation to the frame that shows its newest rows, in ms. */
export const firstPaint = ({ page: tab }: Opened, { row }: Subject): Promise<number> =>
  tab.evaluate(async (selector) => {
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    await new Promise((done) => setTimeout(done, 500)); // The page itself has come to rest.
    const start = performance.now();
    page.open();
    while (!document.querySelector(selector)) await frame();
    await frame();
    // After the frame: what the browser painted.
    await new Promise((done) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = done;
      port2.postMessage(null);
    });
    return performance.now() - start;
  }, row);

export interface Smoothness {
  frames: number;
  /** Frames of 60 a second that were not drawn. */
  dropped: number;
  longestFrameMs: number;
  longTasks: number;
  longestTaskMs: number;
}

/** Notes frames and tasks over 50 ms until `stop`. */
const watchFrames = ({ page: tab }: Opened): Promise<void> =>
  tab.evaluate(() => {
    const times: number[] = [];
    const tasks: number[] = [];
    let on = true;
    const tick = (now: number): void => {
      times.push(now);
      if (on) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) tasks.push(entry.duration);
    });
    observer.observe({ type: 'longtask' });
    Object.assign(globalThis, {
      stopWatching: () => {
        on = false;
        for (const entry of observer.takeRecords()) tasks.push(entry.duration);
        observer.disconnect();
        const gaps = times.slice(1).map((time, i) => time - times[i]!);
        return {
          frames: times.length,
          dropped: gaps.reduce((sum, gap) => sum + Math.max(0, Math.round(gap / (1000 / 60)) - 1), 0),
          longestFrameMs: Math.round(Math.max(...gaps)),
          longTasks: tasks.length,
          longestTaskMs: Math.round(Math.max(0, ...tasks)),
        };
      },
    });
  });
const stopWatching = ({ page: tab }: Opened): Promise<Smoothness> =>
  tab.evaluate(() => (globalThis as unknown as { stopWatching(): Smoothness }).stopWatching());

/**
 * Tasks of the page's main thread by the processor time that they took, while `work` runs. A busy machine makes tasks
 * last longer; it does not make them cost more.
 */
export async function tasks<T>({ page: tab }: Opened, work: () => Promise<T>) {
  const browser = tab.context().browser()!;
  await browser.startTracing(tab, { categories: ['toplevel'] });
  const result = await work();
  const trace = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
  const mains = new Set(
    trace.traceEvents
      .filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const costs = trace.traceEvents
    .filter(({ name, pid, tid }) => name.endsWith('RunTask') && mains.has(`${pid} ${tid}`))
    .map(({ tdur = 0 }) => tdur / 1000);
  return {
    result,
    over50Cpu: costs.filter((ms) => ms > 50).length,
    longestCpuMs: Math.round(Math.max(0, ...costs)),
    cpuMs: Math.round(costs.reduce((sum, ms) => sum + ms, 0)),
  };
}
interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  /** Microseconds of processor time. */
  tdur?: number;
  args?: { name?: string };
}

/** Scrolls up by `stepPx` in each frame, through so many pixels or to the oldest message. */
export async function scrollUp(opened: Opened, subject: Subject, frames: number, stepPx: number) {
  await watchFrames(opened);
  const oldest = await opened.page.evaluate(
    async ([scroller, row, count, step]) => {
      const box = document.querySelector(scroller)!;
      for (let i = 0; i < count; i++) {
        await new Promise((done) => requestAnimationFrame(done));
        box.scrollTop -= step;
      }
      return document.querySelector(row)?.textContent ?? '';
    },
    [subject.scroller, subject.row, frames, stepPx] as const,
  );
  return { ...(await stopWatching(opened)), oldest };
}

/** How many rows render for each of `count` messages that come one after the other. */
export const rendersPerMessage = ({ page: tab }: Opened, count: number): Promise<number> =>
  tab.evaluate(async (messages) => {
    const frames = async () => {
      for (let i = 0; i < 3; i++) await new Promise((done) => requestAnimationFrame(done));
    };
    await frames();
    page.rendered.length = 0;
    for (let i = 0; i < messages; i++) {
      page.arrive();
      await frames();
    }
    return page.rendered.length / messages;
  }, count);

/** Ten messages a second while somebody types ten keys a second. */
export async function typing(opened: Opened, { field }: Subject, seconds: number) {
  const { page: tab } = opened;
  await tab.locator(field).click();
  await tab.evaluate(() => {
    const events: number[] = [];
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (entry.name === 'keydown') events.push(entry.duration);
    });
    observer.observe({ type: 'event', durationThreshold: 16 } as PerformanceObserverInit);
    const timer = setInterval(() => page.arrive(), 100);
    Object.assign(globalThis, {
      stopTyping: () => {
        clearInterval(timer);
        observer.disconnect();
        return Math.max(0, ...events);
      },
    });
  });
  await watchFrames(opened);
  const start = performance.now();
  for (let key = 0; key < seconds * 10; key++) {
    await tab.keyboard.press('abcdefghij'[key % 10]!);
    const wait = start + (key + 1) * 100 - performance.now();
    if (wait > 0) await new Promise((done) => setTimeout(done, wait));
  }
  const frames = await stopWatching(opened);
  const slowestKeyMs = await tab.evaluate(() =>
    (globalThis as unknown as { stopTyping(): number }).stopTyping(),
  );
  return { ...frames, slowestKeyMs };
}

export interface Heap {
  messages: number;
  heapMB: number;
  nodes: number;
  listeners: number;
}

/** `total` messages, one in each frame instead of one a second; the heap after garbage collection at each mark. */
export async function memory(opened: Opened, marks: readonly number[]): Promise<Heap[]> {
  const { page: tab, cdp } = opened;
  const found: Heap[] = [];
  let sent = 0;
  for (const messages of marks) {
    await tab.evaluate(async (count) => {
      for (let i = 0; i < count; i++) {
        page.arrive();
        await new Promise((done) => requestAnimationFrame(done));
      }
      page.rendered.length = 0;
    }, messages - sent);
    sent = messages;
    for (let i = 0; i < 3; i++) await cdp.send('HeapProfiler.collectGarbage');
    const { metrics } = await cdp.send('Performance.getMetrics');
    const of = (name: string): number => metrics.find((metric) => metric.name === name)?.value ?? 0;
    found.push({
      messages,
      heapMB: Math.round(of('JSHeapUsedSize') / 1e5) / 10,
      nodes: of('Nodes'),
      listeners: of('JSEventListeners'),
    });
  }
  return found;
}
