import { queryOptions } from '@tanstack/react-query'

import { answer, client } from './client'
import type { Callback } from './types'

/** The ways to sign in on this server besides name and password. */
export const signInQuery = queryOptions({
  queryKey: ['sign-in'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/sign-in', { signal })),
  staleTime: Infinity,
})

/** Signs in with the admin token, with the token of a sign-in link, or with the name and password of an account. */
export function signIn(shown: { token: string } | { name: string; password: string }) {
  return answer(client.POST('/api/v1/session', { body: shown }))
}

/** Requests the address for signing in at the provider. */
export function beginAtProvider() {
  return answer(client.POST('/api/v1/sign-in/oidc'))
}

/** Signs in with the parameters that the provider sent the browser back with. */
export function signInFromProvider(callback: Callback) {
  return answer(client.POST('/api/v1/session/oidc', { body: callback }))
}

export function signOut() {
  return answer(client.DELETE('/api/v1/session'))
}
