export const all = <E extends Element = Element>(selector: string, from: ParentNode = document): E[] => [
  ...from.querySelectorAll<E>(selector),
];

type Tags = HTMLElementTagNameMap;

export function make<T extends keyof Tags>(
  tag: T,
  props: Partial<Omit<Tags[T], 'style'>> = {},
  ...children: (Node | string)[]
): Tags[T] {
  const element = Object.assign(document.createElement(tag), props);
  element.append(...children);
  return element;
}

/** Reads, or writes and gives back. Where there is no storage, nothing is remembered. */
export function stored(storage: Storage, key: string, value?: string): string {
  try {
    if (value === undefined) return storage.getItem(key) ?? '';
    if (value === '') storage.removeItem(key);
    else storage.setItem(key, value);
  } catch {
    // The browser allows none.
  }
  return value ?? '';
}
