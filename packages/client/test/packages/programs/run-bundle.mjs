// Runs a bundle that was made for a browser or a phone, with the globals that it counts on there.
import { pathToFileURL } from 'node:url';

const [bundle, given] = process.argv.slice(2);
for (const name of ['self', 'window', 'global']) globalThis[name] ??= globalThis;
globalThis.parleyTest = JSON.parse(given);
await import(pathToFileURL(bundle).href);
console.log(JSON.stringify(await globalThis.parleyTest.done));
