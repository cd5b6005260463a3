import { useSyncExternalStore } from 'react';
import { useParley } from '../hooks/context.ts';
import { nothing } from '../hooks/store.ts';

export const cx = (own: string, more: string | undefined): string => (more ? `${own} ${more}` : own);

const dark = (): MediaQueryList => matchMedia('(prefers-color-scheme: dark)');
const watchScheme = (changed: () => void): (() => void) => {
  const query = dark();
  query.addEventListener('change', changed);
  return () => query.removeEventListener('change', changed);
};

/** What the provider says about looks, for the outermost element of a component. */
export function useFrame() {
  const { theme, density, dir, locale } = useParley();
  const scheme = useSyncExternalStore(
    theme === 'auto' ? watchScheme : nothing,
    () => (theme === 'auto' ? (dark().matches ? 'dark' : 'light') : theme),
    () => (theme === 'auto' ? undefined : theme),
  );
  return { 'data-theme': scheme, 'data-density': density, dir, lang: locale };
}

const page = 10;

/** Moves the focus among siblings, by PageUp and PageDown ten of them; true if the key was one of those that do. */
export function moveFocus(event: { key: string }, all: readonly HTMLElement[], horizontal: boolean): boolean {
  const at = all.indexOf(document.activeElement as HTMLElement);
  const rtl = horizontal && all[0] !== undefined && getComputedStyle(all[0]).direction === 'rtl';
  const arrows = horizontal ? ['ArrowLeft', 'ArrowRight'] : ['ArrowUp', 'ArrowDown'];
  const [back, on] = (rtl ? arrows.reverse() : arrows) as [string, string];
  const steps: Record<string, number> = {
    [back]: -1,
    [on]: 1,
    PageUp: -page,
    PageDown: page,
    Home: -all.length,
    End: all.length,
  };
  const step = steps[event.key];
  const next = step && all[Math.min(all.length - 1, Math.max(0, at + step))];
  if (!next) return false;
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
  return true;
}

/** Moves the focus to the next region, or with Shift to the one before it: to its tab stop, or the region itself. */
export function moveRegion(
  event: { key: string; shiftKey: boolean },
  regions: readonly HTMLElement[],
): boolean {
  const shown = regions.filter((region) => region.offsetParent !== null);
  if (event.key !== 'F6' || shown.length < 2) return false;
  const at = shown.findIndex((region) => region.contains(document.activeElement));
  const next = shown.at((at + (event.shiftKey ? -1 : 1)) % shown.length)!;
  const stop =
    next.querySelector<HTMLElement>('[aria-current], .parley-composer textarea') ??
    next.querySelector<HTMLElement>('a[href], button, input, textarea, [tabindex="0"]');
  if (!stop) next.tabIndex = -1;
  (stop ?? next).focus();
  return true;
}
