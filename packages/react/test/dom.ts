import { Window } from 'happy-dom';
import type { ReactNode } from 'react';
import { connected, world } from '../../client/test/harness.ts';

/** React in a light DOM, with the client's fake server and a clock that moves when told. */
const window = new Window({ url: 'http://chat.test/' });
Object.assign(globalThis, { window, document: window.document, IS_REACT_ACT_ENVIRONMENT: true });
// React looks for a DOM when it is loaded.
const { act, createElement, StrictMode } = await import('react');
const { createRoot } = await import('react-dom/client');
const { ParleyProvider } = await import('../src/hooks/index.ts');

export { act, connected, createElement, world };

export async function mount(node: ReactNode, strict = true) {
  const element = document.createElement('div');
  document.body.append(element);
  const root = createRoot(element);
  const render = (next: ReactNode) =>
    act(async () => root.render(strict ? createElement(StrictMode, null, next) : next));
  await render(node);
  return { element, render, unmount: () => act(async () => root.unmount()) };
}

type Props = Parameters<typeof ParleyProvider>[0];
export const provide = (props: Omit<Props, 'children'>, ...children: ReactNode[]) =>
  createElement(ParleyProvider, props as Props, ...children);
