import { useId } from 'react';
import type { ReactNode } from 'react';

/** What a setting is, and beside it the control that it names. */
export function Setting(props: {
  label: string;
  about: string;
  children: (labelled: { id: string; 'aria-describedby': string }) => ReactNode;
}): ReactNode {
  const id = useId();
  return (
    <div className="setting">
      <div>
        <label className="setting-name" htmlFor={id}>
          {props.label}
        </label>
        <p id={`${id}-about`}>{props.about}</p>
      </div>
      {props.children({ id, 'aria-describedby': `${id}-about` })}
    </div>
  );
}
