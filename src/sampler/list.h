/* The samplers; SAMPLER(id) is defined by who includes this. No include guard. */
SAMPLER(random)
SAMPLER(grid)
SAMPLER(tpe)
SAMPLER(gp)
SAMPLER(cmaes)
SAMPLER(nsga2)
SAMPLER(qmc)
