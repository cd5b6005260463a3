/** The few things of the DOM that the page needs. Text is always set as text. */

export const byId = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;

type Child = Node | string | null | false;

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Partial<HTMLElementTagNameMap[K]> & { class?: string } = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const { class: className, ...rest } = props;
  const element = Object.assign(document.createElement(tag), rest);
  if (className) element.className = className;
  element.append(...children.filter((c): c is Node | string => c !== null && c !== false));
  return element;
}

export const button = (text: string, onclick: () => void, className = 'link'): HTMLButtonElement =>
  make('button', { type: 'button', class: className, onclick }, text);

export const time = (iso: string): string =>
  new Date(iso).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });

/** Runs `render` once per frame however often it is asked. */
export function onFrame(render: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      render();
    });
  };
}

/** Makes the children just these, in this order, and touches only what changed: focus, hover and pictures stay. */
export function setChildren(parent: HTMLElement, wanted: readonly HTMLElement[]): void {
  const keep = new Set<Element>(wanted);
  for (const child of [...parent.children]) if (!keep.has(child)) child.remove();
  wanted.forEach((child, i) => {
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null);
  });
}
