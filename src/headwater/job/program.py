"""The name of the module that a job's file becomes where a command line loads it.

Workers cannot import it: what it defines travels to them with the plan, as what a script defines does.
"""

MODULE = "headwater_job"
