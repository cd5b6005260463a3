import assert from 'node:assert/strict';
import { test } from 'node:test';
import { act, connected, createElement, mount, provide, world } from './dom.ts';

const { later } = await import('../src/parts/later.ts');

test('a part that could not be loaded leaves the page as it is, and comes with the next connection', async () => {
  const { clock, client } = world();
  const ann = await connected(client('ann'), clock);
  let asked = 0;
  let reachable = false;
  const Part = later<{ text: string }>(
    async () => {
      asked++;
      if (!reachable) throw new TypeError('Failed to fetch dynamically imported module');
      return { default: ({ text }) => text };
    },
    () => 'meanwhile ',
  );
  const both = () => provide({ client: ann }, createElement(Part, { key: 'p', text: 'part ' }), 'the rest');
  const { element } = await mount(both(), false);
  assert.match(element.textContent, /^meanwhile the rest/);
  await act(async () => ann.disconnect());
  assert.equal(asked, 2);
  assert.match(element.textContent, /^meanwhile the rest/);
  reachable = true;
  await act(() => connected(ann, clock));
  assert.match(element.textContent, /^part the rest/);
  // It is there at once wherever it is shown next, and nothing is asked for.
  const before = asked;
  const again = await mount(both(), false);
  assert.match(again.element.textContent, /^part the rest/);
  assert.equal(asked, before);
});
