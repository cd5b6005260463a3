import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { uncited } from '../uncited.ts';

const citation = /\b[a-z]+#[a-z]/;

test('the typings of the SDKs cite nothing that their users do not have', () => {
  const sources = globSync('packages/{client,server-sdk,protocol}/src/**/*.ts');
  const comments = sources.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/\/\*\*[\s\S]*?\*\//g)].map(([text]) => ({ file, text })),
  );
  assert.ok(comments.filter(({ text }) => citation.test(text)).length > 20, 'there is something to take out');
  for (const { file, text } of comments) assert.doesNotMatch(uncited(text), citation, file);
});

test('what our own documents for users say cites nothing either', () => {
  const documents = globSync([
    'packages/{client,server-sdk}/README.md',
    'packages/protocol/generated/*',
    'packages/protocol/src/texts/*.ts',
  ]);
  assert.ok(documents.length > 5);
  for (const file of documents) assert.doesNotMatch(readFileSync(file, 'utf8'), citation, file);
});
