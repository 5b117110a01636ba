import { type Answer, answer } from './client'

const PAGE = 100

interface ListPage<T> {
  items: T[]
  next_cursor: string | null
}

/** The whole list, page by page. */
export async function allPages<T>(fetchPage: (cursor?: string) => Promise<Answer<ListPage<T>>>): Promise<T[]> {
  const items: T[] = []
  let cursor: string | undefined
  do {
    const found = await answer(fetchPage(cursor))
    items.push(...found.items)
    cursor = found.next_cursor ?? undefined
  } while (cursor !== undefined)
  return items
}

/** How an infinite query walks a list: by the cursor of the page before. */
export const byCursor = {
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page: { next_cursor: string | null }) => page.next_cursor ?? undefined,
}

/** The query parameters of one page. */
export function page(cursor: string | undefined) {
  return { limit: PAGE, ...(cursor !== undefined && { cursor }) }
}
