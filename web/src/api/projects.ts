import { queryOptions } from '@tanstack/react-query'

import { answer, client } from './client'
import { allPages, page } from './paging'
import type { Member, Project } from './types'
import { USERS_KEY } from './users'

/** The projects that the user sees; administrators see all. */
export const projectsQuery = queryOptions({
  queryKey: ['projects'],
  queryFn: ({ signal }) =>
    allPages<Project>((cursor) => client.GET('/api/v1/projects', { params: { query: page(cursor) }, signal })),
})

/** The members of a project, by name. A changed user makes this stale too. */
export function membersQuery(project: string) {
  return queryOptions({
    queryKey: [...USERS_KEY, 'members', project],
    queryFn: ({ signal }) =>
      answer(client.GET('/api/v1/projects/{project}/members', { params: { path: { project } }, signal })),
  })
}

function of(project: string, { id }: Pick<Member, 'id'>) {
  return { params: { path: { project, user_id: id } } }
}

export function addMember(project: string, user: Pick<Member, 'id'>) {
  return answer(client.PUT('/api/v1/projects/{project}/members/{user_id}', of(project, user)))
}

export function removeMember(project: string, user: Pick<Member, 'id'>) {
  return answer(client.DELETE('/api/v1/projects/{project}/members/{user_id}', of(project, user)))
}
