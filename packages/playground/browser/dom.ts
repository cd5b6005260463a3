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
