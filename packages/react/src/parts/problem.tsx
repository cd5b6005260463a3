import { useStrings } from '../hooks/context.ts';

/** What could not be loaded, and a button that tries again. */
export function Problem({ text, onRetry }: { text: string; onRetry: () => void }) {
  const strings = useStrings();
  return (
    <div className="parley-empty" role="alert">
      {text}{' '}
      <button type="button" className="parley-again" onClick={onRetry}>
        {strings.tryNow}
      </button>
    </div>
  );
}
