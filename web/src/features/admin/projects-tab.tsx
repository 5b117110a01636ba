import { useQuery } from '@tanstack/react-query'

import { meQuery } from '@/api/account'
import { addMember, everybodyQuery, membersQuery, projectsQuery, removeMember } from '@/api/admin'
import { toProblem } from '@/api/problem'
import type { Member, Project, User } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'
import { ProblemNotice } from '@/lib/ui/notice'
import { TableHead } from '@/lib/ui/table-head'

import { isManaged, RoleButton } from './user-buttons'

/** All projects with their members. */
export function ProjectsTab() {
  const projects = useQuery(projectsQuery)
  const everybody = useQuery(everybodyQuery)
  const error = projects.error ?? everybody.error
  return (
    <section aria-labelledby="projects">
      <header className="section-header">
        <h2 id="projects">Projects</h2>
        <p className="muted small">Administrators see every project without being members.</p>
      </header>
      {error && <ProblemNotice problem={toProblem(error)} />}
      {everybody.data &&
        projects.data?.map((project) => (
          <ProjectCard key={project.name} project={project} everybody={everybody.data} />
        ))}
    </section>
  )
}

interface Props {
  project: Project
  everybody: readonly User[]
}

/** A project's members, and who could become one. */
function ProjectCard({ project: { name, description }, everybody }: Props) {
  const { data, error } = useQuery(membersQuery(name))
  const ids = new Set(data?.items.map(({ id }) => id))
  const others = everybody.filter(({ id }) => !ids.has(id))
  return (
    <article className="project-card" aria-labelledby={`project-${name}`} data-testid="project">
      <header className="section-header">
        <div>
          <h3 id={`project-${name}`}>{name}</h3>
          {description !== '' && <p className="muted small">{description}</p>}
        </div>
        {data && others.length > 0 && <AddButton project={name} others={others} />}
      </header>
      {error && <ProblemNotice problem={toProblem(error)} />}
      {data?.items.length === 0 && (
        <p className="muted">This project has no members yet. Only administrators see it.</p>
      )}
      {data && data.items.length > 0 && (
        <table>
          <TableHead columns={['Member', 'Role', '']} />
          <tbody>
            {data.items.map((member) => (
              <MemberRow key={member.id} project={name} member={member} />
            ))}
          </tbody>
        </table>
      )}
    </article>
  )
}

function MemberRow({ project, member }: { project: string; member: Member }) {
  const { name, role } = member
  const { data: me } = useQuery(meQuery)
  const remove = useAction(() => removeMember(project, member), { changes: membersQuery(project).queryKey })
  return (
    <tr data-testid="member-row">
      <th scope="row">{name}</th>
      <td>{role}</td>
      <td>
        <span className="row-actions">
          {isManaged(member, me?.id) && <RoleButton user={member} />}
          <ActionDialog
            label="Remove"
            title={`Remove “${name}” from ${project}?`}
            dismiss="Keep it"
            danger
            pending={remove.pending}
            problem={remove.problem}
            onSubmit={() => remove.run(undefined)}
          >
            <p>The user loses access to {project} with the next request. The account and its tokens stay.</p>
          </ActionDialog>
        </span>
      </td>
    </tr>
  )
}

function AddButton({ project, others }: { project: string; others: readonly User[] }) {
  const add = useAction(
    async (form: FormData) => {
      const chosen = others.find(({ id }) => id === form.get('user'))
      if (chosen) await addMember(project, chosen)
    },
    { changes: membersQuery(project).queryKey },
  )
  return (
    <ActionDialog
      label="Add a member"
      confirm="Add"
      title={`Add a member to ${project}`}
      dismiss="Close"
      pending={add.pending}
      problem={add.problem}
      onSubmit={add.run}
    >
      <Field label="User" hint="A user has the same role in every project.">
        <select name="user" required>
          {others.map(({ id, name, role }) => (
            <option key={id} value={id}>
              {name}, {role}
            </option>
          ))}
        </select>
      </Field>
    </ActionDialog>
  )
}
