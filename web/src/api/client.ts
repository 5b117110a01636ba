import createClient from 'openapi-fetch'

import { problemOf, toProblem } from './problem'
import type { paths } from './schema'

/** Typed by openapi.json; the session is a cookie that scripts cannot read. */
export const client = createClient<paths, 'application/json'>({
  baseUrl: window.location.origin,
  credentials: 'same-origin',
  // Looked up at each call, so that a test can replace the network.
  fetch: (request) => fetch(request),
})

interface Answer<T> {
  data?: T
  error?: unknown
  response: Response
}

/** The body of a good answer; throws an ApiProblem for anything else. */
export async function answer<T>(call: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await call.catch((reason: unknown) => {
    throw toProblem(reason)
  })
  if (!response.ok) throw problemOf(error, response.status)
  return data as T
}

/** Throws an ApiProblem unless the server gives the file at `href`; reads its first byte alone. */
export async function requireFile(href: string): Promise<void> {
  const request = new Request(new URL(href, window.location.origin), { headers: { Range: 'bytes=0-0' } })
  const response = await fetch(request).catch((reason: unknown) => {
    throw toProblem(reason)
  })
  if (!response.ok) throw problemOf(await response.json().catch(() => undefined), response.status)
}

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
