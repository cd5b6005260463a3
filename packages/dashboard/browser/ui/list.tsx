import { Button, Center, Table, VisuallyHidden } from '@mantine/core';
import type { ReactNode } from 'react';
import type { ApiFailure } from '../api/call.ts';
import { Failed, Loading } from './states.tsx';

export interface Column<T> {
  title: string;
  cell: (item: T) => ReactNode;
  /** Left out where a table would be too wide; on a phone each row is a card, with all of it. */
  wide?: boolean;
}

/** A list that is there already, in the form of `usePages`. */
export const rows = <T,>(items: T[]) => ({
  items,
  error: null,
  more: null,
  loadingMore: false,
  refresh: () => undefined,
});

/**
 * A list by cursor as a table, with its loading, empty and error states. On phones its rows are cards; the roles keep
 * it a table to those who listen.
 */
export function List<T>(props: {
  what: string;
  pages: {
    items: T[] | undefined;
    error: ApiFailure | null;
    more: (() => void) | null;
    loadingMore: boolean;
    refresh: () => void;
  };
  columns: Column<T>[];
  rowKey: (item: T) => string;
  /** The row whose details are shown beside the list. */
  selected?: string | null;
  empty: ReactNode;
}): ReactNode {
  const { pages, columns } = props;
  if (pages.error && !pages.items) return <Failed error={pages.error} retry={pages.refresh} />;
  if (!pages.items) return <Loading what={props.what} />;
  // A service that looks through a bounded number of rows may find none of them, and still have more to look through.
  const more = pages.more ? (
    <Center mt="md">
      <Button variant="default" onClick={pages.more} loading={pages.loadingMore}>
        {pages.items.length === 0 ? 'Search older entries' : 'Show more'}
      </Button>
    </Center>
  ) : null;
  if (pages.items.length === 0)
    return (
      <>
        {props.empty}
        {more}
      </>
    );
  return (
    <>
      {pages.error ? <Failed error={pages.error} retry={pages.refresh} /> : null}
      <div className="list-box" tabIndex={0} role="region" aria-label={props.what}>
        <Table highlightOnHover className="cards" role="table">
          <Table.Thead role="rowgroup">
            <Table.Tr role="row">
              {columns.map((column) => (
                <Table.Th key={column.title} role="columnheader" className={column.wide ? 'wide' : undefined}>
                  {column.title === '' ? <VisuallyHidden>Actions</VisuallyHidden> : column.title}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody role="rowgroup">
            {pages.items.map((item) => (
              <Table.Tr
                key={props.rowKey(item)}
                role="row"
                data-selected={props.rowKey(item) === props.selected || undefined}
              >
                {columns.map((column) => (
                  <Table.Td
                    key={column.title}
                    role="cell"
                    data-label={column.title}
                    className={column.wide ? 'wide' : undefined}
                  >
                    <div>{column.cell(item)}</div>
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
      {more}
    </>
  );
}
