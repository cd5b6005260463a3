import '../test/page/long-thread.tsx';
import type { LongThreadPage } from '../test/page/long-thread.tsx';

/** The page of the test that counts renders, with what the measurements ask of every page. */
const { page } = globalThis as unknown as { page: LongThreadPage };
Object.assign(page, { arrive: () => page.server.arrive(page.story.id) });
