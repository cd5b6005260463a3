/** Announcements for screen readers. The provider shows the last sentence in one polite region. */
export class Announcer {
  #text = '';
  #listeners = new Set<() => void>();
  get = (): string => this.#text;
  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };
  say = (text: string): void => {
    // A region that gets the same text again stays silent: an invisible character makes the two differ.
    this.#text = text === this.#text ? `${text}\u200b` : text;
    for (const listener of [...this.#listeners]) listener();
  };
}
