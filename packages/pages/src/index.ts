export { answerWith } from './answer.ts';
export type { Answer } from './answer.ts';
export { compressed, packed } from './files.ts';
export type { File, Files } from './files.ts';
export { createLoader } from './load.ts';
