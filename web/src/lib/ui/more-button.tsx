interface Props {
  list: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => Promise<unknown> }
}

/** Fetches the next page of a list, while there is one. */
export function MoreButton({ list }: Props) {
  if (!list.hasNextPage) return null
  return (
    <button
      type="button"
      className="button"
      disabled={list.isFetchingNextPage}
      onClick={() => void list.fetchNextPage()}
    >
      Show more
    </button>
  )
}
