import { createElement, useEffect, useState } from 'react';
import type { ComponentType, ReactNode } from 'react';
import { useClient } from '../hooks/context.ts';
import { useStore } from '../hooks/store.ts';

/**
 * A part that loads when it is first shown, with something in its place until then. A part that could not be loaded, for
 * instance without a network, is asked for again when the connection changes and when it is shown again.
 */
export function later<P extends object>(
  load: () => Promise<{ default: ComponentType<P> }>,
  meanwhile: (props: P) => ReactNode = () => null,
): ComponentType<P> {
  let Part: ComponentType<P> | undefined;
  return function Later(props: P) {
    const state = useStore(useClient().stateStore, 'idle');
    const [, show] = useState(0);
    useEffect(() => {
      if (!Part)
        load().then(
          (module) => {
            Part = module.default;
            show(1);
          },
          () => undefined,
        );
    }, [state]);
    return Part ? createElement(Part, props) : meanwhile(props);
  };
}
