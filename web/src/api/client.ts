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

export interface Answer<T> {
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
