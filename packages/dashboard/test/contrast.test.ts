import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

/** Whoever sees less still reads it: WCAG 2 AA over the tokens, for every pair that is used, in light and in dark. */

const css = await readFile(fileURLToPath(import.meta.resolve('@parley/react/tokens.css')), 'utf8');

function tokensOf(selector: string): Map<string, string> {
  const block = new RegExp(String.raw`${selector} \{([^}]*)\}`).exec(css)![1]!;
  return new Map(
    [...block.matchAll(/--parley-([\w-]+): (#[0-9a-f]{6});/gi)].map(([, name, hex]) => [name!, hex!]),
  );
}

const light = tokensOf(String.raw`\[data-theme='light'\]`);
const themes = { light, dark: new Map([...light, ...tokensOf(String.raw`\[data-theme='dark'\]`)]) };

function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.039_28 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function ratio(one: string, other: string): number {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (high! + 0.05) / (low! + 0.05);
}

/** What is written, and on what. */
const texts: Record<string, string[]> = {
  text: ['surface', 'canvas', 'sunken', 'raised', 'code', 'say-soft', 'danger-soft', 'warn-soft'],
  'text-2': ['surface', 'canvas', 'sunken', 'raised', 'code'],
  'text-3': ['surface', 'canvas', 'sunken', 'say-soft'],
  say: ['surface', 'canvas', 'sunken', 'say-soft'],
  'on-say': ['say'],
  'on-action': ['action', 'say-strong'],
  'on-own': ['own'],
  'own-2': ['own'],
  'on-theirs': ['theirs'],
  'hear-text': ['surface', 'hear-soft'],
  danger: ['surface', 'danger-soft', 'say-soft'],
  warn: ['surface', 'warn-soft'],
  ok: ['surface', 'ok-soft'],
  'call-text': ['call-canvas', 'call-tile', 'call-control', 'call-raised'],
  'call-text-2': ['call-canvas', 'call-control'],
  'call-danger': ['call-canvas'],
  'on-danger': ['danger-fill', 'call-danger-fill'],
};
/** Edges and points that carry meaning. */
const shapes: Record<string, string[]> = {
  control: ['surface', 'canvas'],
  hear: ['surface'],
  'warn-mark': ['surface'],
  focus: ['surface', 'canvas'],
  online: ['surface'],
  'series-1': ['surface'],
  'series-2': ['surface'],
  'series-3': ['surface'],
  'series-4': ['surface'],
};

describe('the tokens', () => {
  for (const [theme, tokens] of Object.entries(themes))
    it(`keep WCAG AA in ${theme}`, () => {
      const below = (pairs: Record<string, string[]>, least: number) =>
        Object.entries(pairs).flatMap(([front, backs]) =>
          backs
            .map((back) => [`${front} on ${back}`, ratio(tokens.get(front)!, tokens.get(back)!)] as const)
            .filter(([, found]) => !(found >= least)),
        );
      assert.deepEqual(below(texts, 4.5), []);
      assert.deepEqual(below(shapes, 3), []);
      assert.ok(ratio('#ffffff', tokens.get('danger-fill')!) >= 4.5);
    });
});
