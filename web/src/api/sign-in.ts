import { queryOptions } from '@tanstack/react-query'

import { answer, client } from './client'
import type { Callback } from './types'

/** How people sign in here, beside name and password. */
export const signInQuery = queryOptions({
  queryKey: ['sign-in'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/sign-in', { signal })),
  staleTime: Infinity,
})

/** With the admin token or that of a sign-in link, or with the name and password of an account. */
export function signIn(shown: { token: string } | { name: string; password: string }) {
  return answer(client.POST('/api/v1/session', { body: shown }))
}

/** Where to go to sign in at the provider. */
export function beginAtProvider() {
  return answer(client.POST('/api/v1/sign-in/oidc'))
}

/** With what the provider sent the browser back with. */
export function signInFromProvider(callback: Callback) {
  return answer(client.POST('/api/v1/session/oidc', { body: callback }))
}

export function signOut() {
  return answer(client.DELETE('/api/v1/session'))
}
