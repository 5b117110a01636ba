import { infiniteQueryOptions } from '@tanstack/react-query'

import { answer, client } from './client'
import { byCursor, page } from './paging'
import type { Role, User } from './types'

/** Everybody who has an account, by name. */
export const usersQuery = infiniteQueryOptions({
  queryKey: ['users'],
  queryFn: ({ pageParam, signal }) =>
    answer(client.GET('/api/v1/users', { params: { query: page(pageParam) }, signal })),
  ...byCursor,
})

/** Without a password the user has tokens only. */
export function createUser(wanted: { name: string; role: Role; password: string | null }) {
  return answer(client.POST('/api/v1/users', { body: wanted }))
}

/** What is left out stays. */
export function changeUser({ id }: User, change: { role?: Role; enabled?: boolean; password?: string }) {
  return answer(client.PATCH('/api/v1/users/{user_id}', { params: { path: { user_id: id } }, body: change }))
}
