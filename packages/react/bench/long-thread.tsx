import { page } from '../test/page/long-thread.tsx';

/** The page of the test that counts renders, with what the measurements ask of every page. */
Object.assign(page, { arrive: () => page.server.arrive(page.story.id) });
