import { queryOptions } from '@tanstack/react-query'

import { answer, client } from './client'
import type { BrowserSession, CurrentUser, Role, Scope, Token } from './types'

/** Roles in rising order: each may do everything that the previous one may, and more. */
const ROLES = ['viewer', 'researcher', 'admin'] as const satisfies readonly Role[]

/** True if `role` includes `least`; the server checks the same. */
export function covers(role: Role, least: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(least)
}

/** The signed-in user. The role can change meanwhile. */
export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => answer(client.GET('/api/v1/me', { signal })),
  staleTime: 60_000,
})

/** The user of the browser's session; undefined without a session or if the server does not answer. */
export function signedIn(): Promise<CurrentUser | undefined> {
  return answer(client.GET('/api/v1/me')).catch(() => undefined)
}

/** True if the user may only read; undefined until the server has answered. */
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

/** With `expires_seconds` null the token is valid until it is revoked. Only this answer holds the token's text. */
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
