import { useQuery } from '@tanstack/react-query'

import { toProblem } from '@/api/problem'
import { projectsQuery } from '@/api/projects'
import { everybodyQuery } from '@/api/users'
import { ProblemNotice } from '@/lib/ui/notice'

import { ProjectCard } from './project-card'

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
