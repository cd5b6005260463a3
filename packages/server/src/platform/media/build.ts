import { findWorkerBinary } from './worker-binary.ts';

/** `npm run media:build`: prepares the media worker, as the service does at its start. */

let said = '';
const binary = await findWorkerBinary({
  progress: ({ text }) => {
    if (text !== said) process.stdout.write(`${text}\n`);
    said = text;
  },
});
process.stdout.write(`${binary}\n`);
