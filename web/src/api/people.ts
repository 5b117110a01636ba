import { queryOptions } from '@tanstack/react-query'

import { answer, client } from './client'
import type { BrowserSession, CurrentUser, Role, Scope, Token } from './types'

/** The order says who may what: each may do what the one before may, and more. */
const ROLES = ['viewer', 'researcher', 'admin'] as const satisfies readonly Role[]

/** Whether `role` may do what is for `least`; the server asks the same. */
export function covers(role: Role, least: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(least)
}

/** Who is signed in. A role can be changed meanwhile. */
export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/me', { signal })),
  staleTime: 60_000,
})

/** The user whose session the browser has; undefined without one, or where the server does not say. */
export function signedIn(): Promise<CurrentUser | undefined> {
  return answer(client.GET('/api/v1/me')).catch(() => undefined)
}

/** Whether the user only looks; undefined until the server has said who it is. */
export function onlyReads(me: CurrentUser | undefined): boolean | undefined {
  return me && !covers(me.role, 'researcher')
}

export function changePassword(passwords: { current: string; password: string }) {
  return answer(client.PUT('/api/v1/me/password', { body: passwords }))
}

export const tokensQuery = queryOptions({
  queryKey: ['tokens'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/tokens', { signal })),
})

/** `expires_seconds` null: until it is revoked. The answer has the token's text, this once. */
export function createToken(wanted: { name: string; scopes: Scope[]; expires_seconds: number | null }) {
  return answer(client.POST('/api/v1/tokens', { body: wanted }))
}

export function revokeToken({ id }: Token) {
  return answer(client.DELETE('/api/v1/tokens/{token_id}', { params: { path: { token_id: id } } }))
}

export const sessionsQuery = queryOptions({
  queryKey: ['sessions'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/sessions', { signal })),
})

export function endSession({ id }: BrowserSession) {
  return answer(client.DELETE('/api/v1/sessions/{session_id}', { params: { path: { session_id: id } } }))
}
