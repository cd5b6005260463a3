import { serve } from './serve.ts';

/** `npm start`; `parley start` does the same. */
await serve(process.argv.slice(2));
